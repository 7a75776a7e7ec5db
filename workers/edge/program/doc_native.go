//go:build !js

// Program is the Cloudflare worker's; it is built for js/wasm only.
package main

func main() {}
