// Writes keys to a LevelDB database, compacts it, and reads them.
#include <cstdio>

#include "leveldb/db.h"

static std::string text(unsigned n)
{
	char room[32];
	std::snprintf(room, sizeof room, "%08u", n);
	return room;
}

int main(int, char **argv)
{
	leveldb::DB *db = nullptr;
	leveldb::Options options;
	options.create_if_missing = true;
	options.write_buffer_size = 1 << 18;
	if (!leveldb::DB::Open(options, argv[1], &db).ok())
		return 1;
	for (unsigned i = 0; i < 20000; i++)
		if (!db->Put(leveldb::WriteOptions(), text(i * 7919 % 20011), "value " + text(i)).ok())
			return 2;
	db->CompactRange(nullptr, nullptr);
	unsigned long found = 0, bytes = 0;
	std::string value;
	for (unsigned i = 0; i < 20011; i++)
		if (db->Get(leveldb::ReadOptions(), text(i), &value).ok())
			found++, bytes += value.size() + static_cast<unsigned char>(value.back());
	std::printf("%lu keys, sum %lu\n", found, bytes);
	delete db;
	return 0;
}
