//go:build !js

// Program is the Cloudflare worker. It builds for js/wasm only.
package main

func main() {}
