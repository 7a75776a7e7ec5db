package local

import (
	"testing"

	"github.com/stackglass/stackglass/workers"
	"github.com/stackglass/stackglass/workers/workerstest"
)

func TestCarrier(t *testing.T) {
	attachment := new(int)
	workerstest.TestCarrier(t, func(t *testing.T) workers.Carrier {
		asker, host := Pair()
		go workerstest.Peer(host)
		return asker
	}, attachment, func(back any) bool { return back == any(attachment) })
}
