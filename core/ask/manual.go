//go:build !js

package ask

// manual returns help text for the command's users. In the page, manual returns "", because help
// texts would make up much of the code size of the verbs.
func manual(text string) string { return text }
