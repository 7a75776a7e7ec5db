//go:build !js

// App is the program of the page. It builds for js/wasm only.
package main

func main() {}
