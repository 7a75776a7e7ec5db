//go:build !js

// Program is the Cloudflare worker. The worker builds for js/wasm only.
package main

func main() {}
