// Runs a fuzz target over mutations of its good inputs where libFuzzer is not at hand: the same
// ones every time.
//
// usage: fuzz_FORMAT NUM_MUTATIONS [FILE]...
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz.h"

namespace {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}

  std::string mutated(std::string input) {
    for (uint64_t left = 1 + below(4); left > 0; --left) change(input);
    if (below(2) == 0) repair(input);
    return input;
  }
  uint64_t below(uint64_t n) { return n ? random_() % n : 0; }

 private:
  // What a reader may stumble over.
  static constexpr const char* kWords[] = {"0",
                                           "-1",
                                           "1e9",
                                           "9223372036854775807",
                                           "18446744073709551616",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "(",
                                           ")",
                                           "\"",
                                           "'",
                                           ",",
                                           ":",
                                           "null",
                                           "{\"a\":",
                                           "[[[[[[[[",
                                           "True",
                                           "'descr'",
                                           "\"shape\"",
                                           "\\u0000",
                                           "\xff"};

  void change(std::string& input) {
    const size_t at = below(input.size() + 1);
    switch (below(6)) {
      case 0:
        if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < input.size()) input[at] = static_cast<char>(below(256));
        break;
      case 2:
        input.insert(at, kWords[below(std::size(kWords))]);
        break;
      case 3:
        input.erase(at, below(16));
        break;
      case 4:
        input.insert(at, input.substr(below(input.size() + 1), below(32)));
        break;
      default:
        input.resize(at);
    }
  }

  std::mt19937_64 random_;
};

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> inputs = good_inputs();
  const uint64_t num_mutations = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0;
  for (const std::string& input : inputs) run(input);
  for (uint64_t seed = 0; seed < num_mutations; ++seed) {
    Mutator mutator(seed);
    run(mutator.mutated(inputs[mutator.below(inputs.size())]));
  }
  for (int i = 2; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    run({std::istreambuf_iterator<char>(file), {}});
  }
  std::printf("%zu inputs, %llu mutations\n", inputs.size(),
              static_cast<unsigned long long>(num_mutations));
}
