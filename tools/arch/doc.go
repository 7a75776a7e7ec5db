// Package arch tests the rules of the repository: which folders exist, which packages may import
// which, which packages the core may not use, and how texts are worded. It consists of tests only;
// `go test ./tools/arch` lists every line that breaks a rule.
//
// Only direct imports are checked, not transitive ones: for js/wasm even fmt depends on
// syscall/js, although the importing package does not intend to use it.
package arch
