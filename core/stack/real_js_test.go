package stack_test

import (
	"io"
	"net/http"
	"os"
	"testing"
)

// openReal opens a trace. In a browser, the traces are on the server that runs the tests.
func openReal(b *testing.B, name string) io.ReadCloser {
	url := os.Getenv("STACKGLASS_DATA_URL")
	if url == "" {
		b.Skip("skipped: no traces, because STACKGLASS_DATA_URL is not set")
	}
	response, err := http.Get(url + "traces/" + name + ".lackey.lz4")
	if err != nil || response.StatusCode != http.StatusOK {
		b.Fatal(url, err)
	}
	return response.Body
}
