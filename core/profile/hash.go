//go:build !js

package profile

import (
	"crypto/sha256"
	"hash"
)

// newHash is what digests are made with.
func newHash() hash.Hash { return sha256.New() }
