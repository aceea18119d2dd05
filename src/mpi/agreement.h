// What all ranks must have in common, compared before anything else is exchanged.
#pragma once

#include "moe/mpi.h"
#include "mpi/wire.h"

namespace moe::mpi {

// Collective. Throws the same InvalidArgument on every rank unless all ranks have the same valid
// arguments.
void check_agreement(const Wire& wire, const ExpertExchange::Args& args);

}  // namespace moe::mpi
