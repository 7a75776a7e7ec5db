//go:build !js

// Program is the Cloudflare worker. Program builds for js/wasm only.
package main

func main() {}
