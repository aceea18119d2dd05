#include "draw/svg.h"

#include <cstdio>

#include "files/file_error.h"

namespace moe::tools {
namespace {

// Colours follow the reader's scheme.
constexpr const char* kStyle =
    "text{font:13px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
    ".title{font-size:15px;font-weight:600}.small{font-size:12px}.on{fill:#fff;font-weight:600}"
    ".link{fill:none;stroke-width:2}"
    ".paper{fill:#fff}.text,.title{fill:#1f2328}.quiet{fill:#59636e}"
    ".card{fill:#f4f6f8}.band{fill:#eaeef2}.axis{stroke:#9aa6b3}.mark{stroke:#a8540f;stroke-"
    "dasharray:5 4}"
    ".bar{fill:#2563b0}.bar2{fill:#c4610b}.marktext{fill:#a8540f}"
    ".t0{fill:#2563b0}.t1{fill:#a8540f}.t2{fill:#1d7a55}.t3{fill:#8445a5}"
    ".t4{fill:#b0304f}.t5{fill:#5b6b1a}.t6{fill:#0f7490}.t7{fill:#6b5b4f}"
    ".l0{stroke:#2563b0}.l1{stroke:#a8540f}.l2{stroke:#1d7a55}.l3{stroke:#8445a5}"
    ".l4{stroke:#b0304f}.l5{stroke:#5b6b1a}.l6{stroke:#0f7490}.l7{stroke:#6b5b4f}"
    "@media(prefers-color-scheme:dark){"
    ".paper{fill:#0d1117}.text,.title{fill:#e6edf3}.quiet{fill:#9aa6b3}"
    ".card{fill:#171d26}.band{fill:#202833}.axis{stroke:#59636e}.mark{stroke:#e8a05c}"
    ".bar{fill:#6ea8f0}.bar2{fill:#e8a05c}.marktext{fill:#e8a05c}"
    ".l0{stroke:#6ea8f0}.l1{stroke:#e8a05c}.l2{stroke:#55c394}.l3{stroke:#c493e0}"
    ".l4{stroke:#f0809a}.l5{stroke:#b5c95a}.l6{stroke:#5cc3dd}.l7{stroke:#c5b3a5}}";

}  // namespace

std::string escaped(const std::string& words) {
  std::string out;
  for (const char c : printable(words)) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

void Svg::rect(double x, double y, double width, double height, const std::string& classes,
               double radius) {
  body_ +=
      text("<rect class=\"", classes, "\" x=\"", decimal(x), "\" y=\"", decimal(y), "\" width=\"",
           decimal(width), "\" height=\"", decimal(height), "\" rx=\"", decimal(radius), "\"/>\n");
}

void Svg::tooltip_rect(double x, double y, double width, double height, const std::string& classes,
                       const std::string& tooltip) {
  body_ += text("<rect class=\"", classes, "\" x=\"", decimal(x), "\" y=\"", decimal(y),
                "\" width=\"", decimal(width), "\" height=\"", decimal(height), "\"><title>",
                escaped(tooltip), "</title></rect>\n");
}

void Svg::line(double x0, double y0, double x1, double y1, const std::string& classes) {
  body_ += text("<path class=\"", classes, "\" fill=\"none\" d=\"M", decimal(x0), " ", decimal(y0),
                "L", decimal(x1), " ", decimal(y1), "\"/>\n");
}

void Svg::curve(double x0, double y0, double x1, double y1, const std::string& classes) {
  const std::string middle = decimal((x0 + x1) / 2);
  body_ += text("<path class=\"link ", classes, "\" d=\"M", decimal(x0), " ", decimal(y0), "C",
                middle, " ", decimal(y0), " ", middle, " ", decimal(y1), " ", decimal(x1), " ",
                decimal(y1), "\"/>\n");
}

void Svg::words(double x, double y, const std::string& words, const std::string& classes,
                const char* anchor) {
  body_ += text("<text class=\"", classes, "\" x=\"", decimal(x), "\" y=\"", decimal(y),
                "\" text-anchor=\"", anchor, "\">", escaped(words), "</text>\n");
}

std::string Svg::str(int height) const {
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width_, " ", height,
              "\" role=\"img\" aria-label=\"", escaped(label_), "\">\n<style>", kStyle,
              "</style>\n<rect class=\"paper\" width=\"", width_, "\" height=\"", height,
              "\" rx=\"8\"/>\n", body_, "</svg>\n");
}

void check_picture(const std::string& path) {
  if (!path.ends_with(".svg")) throw FileError(path, "a picture's name needs to end in .svg");
}

}  // namespace moe::tools
