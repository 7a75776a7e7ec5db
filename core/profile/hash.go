//go:build !js

package profile

import (
	"crypto/sha256"
	"hash"
)

// newHash returns the hash for digests.
func newHash() hash.Hash { return sha256.New() }
