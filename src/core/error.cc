#include "moe/error.h"

namespace moe {

InvalidArgument::InvalidArgument(const std::string& argument, const std::string& problem)
    : Error(argument + ": " + problem), argument_(argument) {}

IndexError::IndexError(const std::string& message, int64_t slot, int64_t value)
    : Error(message), slot_(slot), value_(value) {}

}  // namespace moe
