//go:build !js

package ask

// manual returns help text for the command's users. The page leaves such text out, because it is a
// large part of the verbs.
func manual(text string) string { return text }
