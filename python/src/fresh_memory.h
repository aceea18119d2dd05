// Memory that nobody has touched yet.
#pragma once

#include <cstddef>

namespace moe::python {

// Asks the system for large pages, where it gives them on request: the first write to each page of
// a large result otherwise costs several times what writing it costs. A wish: failure changes
// nothing.
void prefer_large_pages(void* data, size_t num_bytes) noexcept;

}  // namespace moe::python
