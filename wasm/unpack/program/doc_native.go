//go:build !js

// Program decompresses files in a worker. Program builds for js/wasm only.
package main

func main() {}
