//go:build !js

// Program is the page's second program. The second program builds for js/wasm only.
package main

func main() {}
