// SVG pictures that read well on light and dark pages, with nothing from outside.
#pragma once

#include <string>

#include "files/text.h"

namespace moe::tools {

// Text of an SVG: "<" and the like become entities.
std::string escaped(const std::string& words);

class Svg {
 public:
  Svg(int width, const std::string& label) : width_(width), label_(label) {}

  // `classes` name what style() in svg.cc has: card, band, bar, mark, quiet, t0 to t7, ...
  void rect(double x, double y, double width, double height, const std::string& classes,
            double radius = 0);
  void line(double x0, double y0, double x1, double y1, const std::string& classes);
  // From left to right, level at both ends.
  void curve(double x0, double y0, double x1, double y1, const std::string& classes);
  void words(double x, double y, const std::string& words, const std::string& classes = "text",
             const char* anchor = "start");
  void tooltip_rect(double x, double y, double width, double height, const std::string& classes,
                    const std::string& tooltip);

  std::string str(int height) const;

 private:
  int width_;
  std::string label_, body_;
};

// Throws FileError unless the name is a picture's: it must not replace a file of tensors by
// mistake.
void check_picture(const std::string& path);

}  // namespace moe::tools
