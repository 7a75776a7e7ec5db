package profile_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

func TestEncodePredicted(t *testing.T) {
	p := sampledProfile()
	p.Predicted = &profile.Predicted{Cores: 16, How: "iterations, round-robin"}
	back, err := profile.Decode(p.Encode())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Encode(), p.Encode()) || *back.Predicted != *p.Predicted {
		t.Errorf("encoding and decoding changes %+v to %+v", p.Predicted, back.Predicted)
	}
	ran := sampledProfile()
	if ran.Digest() == p.Digest() {
		t.Error("a predicted profile has the same digest as a real profile")
	}
	for _, cores := range []uint32{0, 1, profile.MaxCores + 1} {
		p.Predicted.Cores, p.Totals.Threads = cores, []uint32{0, 1}
		var check *profile.CheckError
		if _, err := profile.Decode(p.Encode()); !errors.As(err, &check) {
			t.Errorf("with %d cores, Check() = %v, want a CheckError", cores, err)
		}
	}
}
