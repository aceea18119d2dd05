#include "acl/op_spec.h"

#include <algorithm>
#include <cctype>

#include "acl/runtime/error.h"

namespace moe::acl {
namespace {

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view spelled(std::string_view word, std::span<const Word> words) {
  const auto found = std::ranges::find(words, word, &Word::core);
  return found == words.end() ? word : found->prototype;
}

}  // namespace

std::string translated(std::string_view message, std::span<const Word> words) {
  std::string result;
  while (!message.empty()) {
    // Whole runs of one kind at a time, so that top_k is not found inside of another name.
    const bool word = in_word(message.front());
    size_t length = 1;
    while (length < message.size() && in_word(message[length]) == word) ++length;
    const std::string_view run = message.substr(0, length);
    result += word ? spelled(run, words) : run;
    message.remove_prefix(length);
  }
  return result;
}

void rethrow_translated(const OpSpec& op) {
  const auto failure = [&op](int code, const Error& error) {
    return Failure(code, translated(error.what(), op.words));
  };
  try {
    throw;
  } catch (const NullArgument& error) {
    throw failure(ACLNN_ERR_PARAM_NULLPTR, error);
  } catch (const InvalidArgument& error) {
    throw failure(ACLNN_ERR_PARAM_INVALID, error);
  } catch (const Error& error) {
    // What is left can only be found while running: the contents of indices.
    throw failure(ACL_ERROR_RT_AICORE_EXCEPTION, error);
  }
}

}  // namespace moe::acl
