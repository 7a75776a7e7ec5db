void leave(const char *how);

int main(int argc, char **argv)
{
	leave(argc > 1 ? argv[1] : "");
	return 0;
}
