// Events: marks that streams pass.
#pragma once

#include <memory>
#include <mutex>

#include "acl/runtime/gate.h"
#include "acl/runtime/handles.h"

namespace moe::acl {

// Each record makes a new gate, which opens when its stream gets there. Whoever waits holds the
// gate, so an event may be recorded again, reset or destroyed meanwhile.
class Event {
 public:
  // The gate of the newest record; null when there is none.
  std::shared_ptr<Gate> recorded() const;
  void set_recorded(std::shared_ptr<Gate> gate);
  // Forgets `gate` if it is still the newest.
  void reset(const std::shared_ptr<Gate>& gate);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Gate> recorded_;
};

HandleTable<Event>& events();

}  // namespace moe::acl
