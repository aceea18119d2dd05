#include "files/npy_header.h"

#include <charconv>

#include "files/file_error.h"

namespace moe::tools {
namespace {

// Only what NumPy's own writer makes: no escapes in strings, no expressions.
class Parser {
 public:
  Parser(std::string_view header, const std::string& path) : rest_(header), path_(path) {}

  NpyHeader dictionary() {
    expect('{');
    while (!take('}')) {
      entry();
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) fail("more than one dictionary");
    if (seen_ != 7) fail("no descr, fortran_order and shape, all three");
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(path_, "the .npy header has " + problem);
  }

  void skip_space() {
    const size_t first = rest_.find_first_not_of(" \n\t\r");
    rest_.remove_prefix(std::min(first, rest_.size()));
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(char c) {
    if (take(c)) return;
    const std::string found =
        rest_.empty() ? "its end" : printable(std::string(rest_.substr(0, 8)));
    fail(text(found, " where '", c, "' belongs"));
  }

  std::string string() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const size_t end = rest_.find(quote);
    if (end == std::string_view::npos) fail("a string without end");
    std::string value(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return value;
  }

  void mark(unsigned entry, const std::string& key) {
    if (seen_ & entry) fail("two entries " + key);
    seen_ |= entry;
  }

  void entry() {
    const std::string key = string();
    expect(':');
    if (key == "descr") {
      mark(1, key);
      header_.descr = descr();
    } else if (key == "fortran_order") {
      mark(2, key);
      header_.fortran_order = boolean();
    } else if (key == "shape") {
      mark(4, key);
      shape();
    } else {
      fail("an unknown entry " + printable(key));
    }
  }

  std::string descr() {
    skip_space();
    if (!rest_.empty() && (rest_.front() == '[' || rest_.front() == '(')) {
      fail("a structured dtype, but needs one plain element type");
    }
    return string();
  }

  bool boolean() {
    if (take_word("True")) return true;
    if (!take_word("False")) fail("a fortran_order that is neither True nor False");
    return false;
  }

  void shape() {
    expect('(');
    while (!take(')')) {
      header_.shape.push_back(size());
      if (!take(',')) {
        expect(header_.shape.size() == 1 ? ',' : ')');  // "(3)" is a number
        break;
      }
    }
  }

  int64_t size() {
    skip_space();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail("a size in its shape that is no count");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    take('L');  // Python 2's
    return value;
  }

  std::string_view rest_;
  const std::string& path_;
  NpyHeader header_;
  unsigned seen_ = 0;  // a bit for each entry
};

}  // namespace

NpyHeader parse_npy_header(std::string_view header, const std::string& path) {
  return Parser(header, path).dictionary();
}

}  // namespace moe::tools
