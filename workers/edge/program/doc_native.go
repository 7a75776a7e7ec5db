//go:build !js

// Program is the Cloudflare worker; it is built for js/wasm only.
package main

func main() {}
