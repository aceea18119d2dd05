// MOE_API marks what libmoe_permute exports; everything else in it is hidden.
#pragma once

#define MOE_API __attribute__((visibility("default")))
