// Package core contains the documents that describe the analyses. The analyses are in the
// subpackages of package core. Example functions show how to use the analyses as a library: one
// pass over a trace, queries of its profile, an exact simulation, and stack distances of arbitrary
// data.
package core

import "embed"

// Documents contains MODELS.md, which defines what each analysis computes, and the documents that
// define the file formats. The names of the documents are paths relative to core.
//
//go:embed MODELS.md trace/sgt/FORMAT.md loops/FORMAT.md
var Documents embed.FS
