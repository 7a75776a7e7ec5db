// The runtime as a single file, so that its names are local.
#define _GNU_SOURCE
#define SG_API static

#include "create.c"
#include "encode.c"
#include "ending.c"
#include "file.c"
#include "leave.c"
#include "pack.c"
#include "place.c"
#include "runtime.c"
#include "say.c"
#include "settings.c"
#include "system.c"
