package shelf

import (
	"os"
	"testing"

	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/stack/stacktest"
)

func TestSpillStore(t *testing.T) {
	parent := t.TempDir()
	stacktest.RunShelf(t, func(keep bool) (stack.Shelf, error) {
		if !keep {
			if err := os.RemoveAll(parent); err != nil {
				return nil, err
			}
		}
		return Open(parent, "key")
	})
}
