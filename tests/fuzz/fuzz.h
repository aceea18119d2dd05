// A fuzz target: libFuzzer's function, and good inputs to start from for the driver here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

std::vector<std::string> good_inputs();
// Puts right what a mutation of any byte breaks and every reader sees at once.
void repair(std::string& input);
