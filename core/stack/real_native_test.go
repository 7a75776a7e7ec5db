//go:build !js

package stack_test

import (
	"io"
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/trace/tracetest"
)

func openReal(b *testing.B, name string) io.ReadCloser {
	file, err := os.Open(tracetest.RealPath(b, name))
	if err != nil {
		b.Fatal(err)
	}
	return file
}
