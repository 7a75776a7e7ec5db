//go:build !js

// App is the program of the page; it is built for js/wasm only.
package main

func main() {}
