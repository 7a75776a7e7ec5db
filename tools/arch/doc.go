// Package arch holds the rules of the house as tests: which folders there are, which may import
// which, and what a package of the core may not touch. It has no code of its own; `go test
// ./tools/arch` names every line that breaks a rule.
//
// Imports are looked at as they are written in the source, not as they are resolved: for js/wasm
// even fmt ends up at syscall/js, which says nothing about who meant to use it.
package arch
