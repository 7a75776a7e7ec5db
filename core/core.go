// Package core is the root of the analyses, which are in the packages below. It contains their documents;
// its examples show how to use the analyses as a library: one pass over a trace, questions to its profile,
// an exact simulation, stack distances of other data.
package core

import "embed"

// Documents contains MODELS.md, which defines what each analysis computes, and the definitions of the file
// formats, by their paths below core.
//
//go:embed MODELS.md trace/sgt/FORMAT.md loops/FORMAT.md
var Documents embed.FS
