// Package arch tests the rules of the repository: the folders that exist, the packages that each
// package may import, the packages that the core may not use, and the wording of everything that
// people read. The package consists of tests only. `go test ./tools/arch` lists every line that
// breaks a rule.
//
// Only direct imports are checked. For js/wasm, even fmt depends on syscall/js, so a rule about
// transitive imports would reject almost every package.
package arch
