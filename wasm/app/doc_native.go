//go:build !js

// App is the program of the page. App builds for js/wasm only.
package main

func main() {}
