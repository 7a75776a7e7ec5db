//go:build !js

// Program unpacks in a worker; it is built for js/wasm only.
package main

func main() {}
