#include "files/safetensors_header.h"

#include <nlohmann/json.hpp>
#include <set>

#include "files/file_error.h"

namespace moe::tools {
namespace {

constexpr const char* kMetadata = "__metadata__";

// Receives the header as events, and stops the parser at the first one that the format does not
// have there: depth is bounded because the third level has arrays of numbers only.
class Handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(const std::string& path) : path_(path) {}

  std::vector<SafetensorsEntry> take() { return std::move(entries_); }

  bool start_object(size_t) override {
    if (depth_ >= 2) fail("objects within " + where() + ", but the format has none there");
    in_metadata_ = depth_ == 1 && key_ == kMetadata;
    if (depth_ == 1 && !in_metadata_) begin_entry();
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) end_entry();
    return true;
  }
  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_array_) fail("a list where none belongs, " + where());
    if (field_ == "dtype") fail("no dtype but a list, " + where());
    in_array_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    if (field_ == "shape") {
      entries_.back().shape = numbers_;
    } else {
      set_offsets();
    }
    return true;
  }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      if (!names_.insert(name).second) fail(text("the name ", quoted(name), " twice"));
      key_ = name;
    } else if (!fields_.insert(name).second) {
      fail(text(quoted(name), " twice, ", where()));
    } else if (!in_metadata_ && name != "dtype" && name != "shape" && name != "data_offsets") {
      fail(text("an unknown ", quoted(name), ", ", where()));
    }
    field_ = name;
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ != 2 || in_array_) fail("a string where none belongs, " + where());
    if (in_metadata_) return true;
    if (field_ != "dtype") fail("a string for its " + field_ + ", " + where());
    const DTypeFacts* known = find_safetensors_dtype(value);
    if (!known) fail(text("an unknown dtype ", quoted(value), ", ", where()));
    entries_.back().dtype = known->dtype;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (!in_array_) fail("a number where none belongs, " + where());
    if (value > static_cast<uint64_t>(INT64_MAX)) fail("a number past 2^63, " + where());
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }
  bool number_integer(number_integer_t) override { return no_value("a negative number"); }
  bool number_float(number_float_t, const std::string&) override { return no_value("a fraction"); }
  bool null() override { return no_value("null"); }
  bool boolean(bool) override { return no_value("a truth value"); }
  bool binary(binary_t&) override { return no_value("bytes"); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail(text("no valid JSON at byte ", position));
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(path_, "its header has " + problem);
  }
  std::string where() const { return depth_ == 0 ? "at its top" : "at " + quoted(key_); }
  bool no_value(const char* what) const { fail(what + (" where none belongs, " + where())); }

  void begin_entry() {
    fields_.clear();
    entries_.push_back({.name = key_, .shape = {}});
  }
  void end_entry() const {
    if (fields_.size() != 3) fail("no dtype, shape and data_offsets, all three, " + where());
  }
  void set_offsets() {
    if (numbers_.size() != 2) fail("data_offsets that are not two numbers, " + where());
    entries_.back().begin = numbers_[0];
    entries_.back().end = numbers_[1];
  }

  const std::string& path_;
  std::vector<SafetensorsEntry> entries_;
  int depth_ = 0;
  bool in_metadata_ = false, in_array_ = false;
  std::string key_, field_;
  std::set<std::string> names_, fields_;
  std::vector<int64_t> numbers_;
};

}  // namespace

std::vector<SafetensorsEntry> parse_safetensors_header(std::string_view json,
                                                       const std::string& path) {
  if (!json.starts_with('{')) throw FileError(path, "its header does not begin with {");
  // The parser would take a null byte for the text's end.
  if (json.find('\0') != std::string_view::npos)
    throw FileError(path, "its header has a null byte");
  Handler handler(path);
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
  return handler.take();
}

}  // namespace moe::tools
