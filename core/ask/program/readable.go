package program

import "github.com/ianlancetaylor/demangle"

// Readable returns the name of a function as it is written in the source: it demangles the names of
// C++ and Rust functions. The command and the page use it for [ask.Run.Readable].
func Readable(name string) string { return demangle.Filter(name, demangle.NoEnclosingParams) }
