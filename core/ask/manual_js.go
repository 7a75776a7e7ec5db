package ask

func manual(string) string { return "" }

func manualOf(func() string) string { return "" }
