// Package arch tests the rules of the repository: which folders exist, which packages may import
// which, which packages the core may not use, and the English of texts. It has no code of its
// own; `go test ./tools/arch` lists every line that breaks a rule.
//
// Imports are checked as written in the source, not transitively: for js/wasm even fmt depends on
// syscall/js, although the importing package does not intend to use it.
package arch
