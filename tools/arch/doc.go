// Package arch tests the rules of the repository: which folders exist, which packages may import
// which, which packages the core may not use, and how texts are worded. It consists of tests only;
// `go test ./tools/arch` lists every line that breaks a rule.
//
// Only direct imports are checked, not transitive imports. For js/wasm, even fmt depends on
// syscall/js, so a rule about transitive imports would reject almost every package.
package arch
