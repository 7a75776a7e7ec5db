// Works with SQLite, in memory: makes a table and an index, joins, sorts, deletes, and
// asks for what is wrong.
#include <stdio.h>

#ifndef ROWS
#define ROWS "400"
#endif

typedef struct sqlite3 sqlite3;
int sqlite3_open(const char *, sqlite3 **);
int sqlite3_exec(sqlite3 *, const char *, int (*)(void *, int, char **, char **), void *, char **);
int sqlite3_close(sqlite3 *);

static int print(void *at, int columns, char **values, char **names)
{
	(void)at, (void)names;
	for (int i = 0; i < columns; i++)
		printf("%s%c", values[i] ? values[i] : "-", i + 1 < columns ? ' ' : '\n');
	return 0;
}

int main(void)
{
	static const char *const statements[] = {
		"create table t(id integer primary key, name text, n real)",
		"with recursive c(i) as (select 1 union all select i + 1 from c where i < " ROWS ") insert into t select i, 'name' || (i * 37 % 101), i * 1.5 from c",
		"create index byname on t(name, n)",
		"select count(*), sum(n), max(name) from t where name like '%7%'",
		"select a.name, count(*) from t a join t b on a.name = b.name and a.id < b.id group by a.name order by 2 desc, 1 limit 5",
		"update t set n = n * 2 where id % 3 = 0",
		"delete from t where name between 'name3' and 'name5'",
		"select typeof(n), substr(name, 5), round(avg(n), 2), json_array(id, name) from t group by id % 7",
		"select * from nowhere",
		"begin; insert into t values (1, 'again', 0); commit",
		"rollback",
		"pragma integrity_check",
	};
	sqlite3 *db;
	if (sqlite3_open(":memory:", &db))
		return 1;
	for (unsigned i = 0; i < sizeof statements / sizeof *statements; i++)
		printf("%d\n", sqlite3_exec(db, statements[i], print, 0, 0));
	return sqlite3_close(db);
}
