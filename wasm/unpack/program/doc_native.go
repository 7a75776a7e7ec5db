//go:build !js

// Program decompresses files in a worker. It builds for js/wasm only.
package main

func main() {}
