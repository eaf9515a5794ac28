/* index_databases.c - LMDB against SQLite for the index of manifests
 *
 *	ninja -C build bench/index_databases && build/bench/index_databases FOLDER [ROWS]
 *
 * Both get the same rows (a key of 72 bytes, a value of 128), neither syncs: a transaction per row as actions finish,
 * then look-ups of all rows in another order, as planning does. Prints CPU time, which does not depend on how busy the
 * machine is. docs/DECISIONS.md has the figures. */
#include <lmdb.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/hash.h"

enum { KEY = 72, VALUE = 128 };

static void
check(int failure, const char *what)
{
	if (failure) {
		fprintf(stderr, "%s failed: %d\n", what, failure);
		exit(1);
	}
}

static void
make_key(uint64_t i, unsigned char key[KEY])
{
	for (int part = 0; part < KEY / 8; part++)
		leat_store64(key + 8 * part, leat_mix64(i * 16 + (uint64_t)part));
}

/* An order that is not that of the inserts. */
static uint64_t
shuffled(uint64_t i, uint64_t rows)
{
	return i * 7919 % rows;
}

static double
cpu_us(clock_t since, uint64_t rows)
{
	return (double)(clock() - since) / CLOCKS_PER_SEC * 1e6 / (double)rows;
}

static void
run_lmdb(const char *folder, uint64_t rows, double result[2])
{
	unsigned char key[KEY], bytes[VALUE] = {1};
	MDB_val name = {KEY, key}, value = {VALUE, bytes};
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi table;
	clock_t begin;

	check(mdb_env_create(&env), "mdb_env_create");
	check(mdb_env_set_mapsize(env, (size_t)1 << 32), "mdb_env_set_mapsize");
	check(mdb_env_open(env, folder, MDB_NOSYNC | MDB_NOTLS, 0666), "mdb_env_open");
	check(mdb_txn_begin(env, NULL, 0, &txn), "mdb_txn_begin");
	check(mdb_dbi_open(txn, NULL, 0, &table), "mdb_dbi_open");
	check(mdb_txn_commit(txn), "mdb_txn_commit");
	begin = clock();
	for (uint64_t i = 0; i < rows; i++) {
		make_key(i, key);
		value = (MDB_val){VALUE, bytes};
		check(mdb_txn_begin(env, NULL, 0, &txn), "mdb_txn_begin");
		check(mdb_put(txn, table, &name, &value, 0), "mdb_put");
		check(mdb_txn_commit(txn), "mdb_txn_commit");
	}
	result[0] = cpu_us(begin, rows);
	check(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), "mdb_txn_begin");
	mdb_txn_reset(txn);
	begin = clock();
	for (uint64_t i = 0; i < rows; i++) {
		make_key(shuffled(i, rows), key);
		check(mdb_txn_renew(txn), "mdb_txn_renew");
		check(mdb_get(txn, table, &name, &value), "mdb_get");
		mdb_txn_reset(txn);
	}
	result[1] = cpu_us(begin, rows);
	mdb_txn_abort(txn);
	mdb_env_close(env);
}

static void
run_sqlite(const char *folder, uint64_t rows, double result[2])
{
	unsigned char key[KEY], bytes[VALUE] = {1};
	sqlite3_stmt *insert, *find;
	char path[4096];
	sqlite3 *db;
	clock_t begin;

	snprintf(path, sizeof(path), "%s/index.sqlite", folder);
	check(sqlite3_open(path, &db), "sqlite3_open");
	check(sqlite3_exec(db,
	                   "pragma journal_mode=wal; pragma synchronous=off; pragma mmap_size=4294967296;"
	                   "create table made(key blob primary key, value blob) without rowid",
	                   NULL, NULL, NULL),
	      "create");
	check(sqlite3_prepare_v2(db, "insert into made values(?, ?)", -1, &insert, NULL), "prepare");
	check(sqlite3_prepare_v2(db, "select value from made where key = ?", -1, &find, NULL), "prepare");
	begin = clock();
	for (uint64_t i = 0; i < rows; i++) {
		make_key(i, key);
		sqlite3_bind_blob(insert, 1, key, KEY, SQLITE_STATIC);
		sqlite3_bind_blob(insert, 2, bytes, VALUE, SQLITE_STATIC);
		check(sqlite3_step(insert) != SQLITE_DONE, "insert");
		sqlite3_reset(insert);
	}
	result[0] = cpu_us(begin, rows);
	begin = clock();
	for (uint64_t i = 0; i < rows; i++) {
		make_key(shuffled(i, rows), key);
		sqlite3_bind_blob(find, 1, key, KEY, SQLITE_STATIC);
		check(sqlite3_step(find) != SQLITE_ROW, "select");
		sqlite3_reset(find);
	}
	result[1] = cpu_us(begin, rows);
	sqlite3_finalize(insert);
	sqlite3_finalize(find);
	sqlite3_close(db);
}

int
main(int argc, char **argv)
{
	uint64_t rows = argc > 2 ? strtoull(argv[2], NULL, 10) : 100000;
	double lmdb[2], sqlite[2];

	if (argc < 2 || mkdir(argv[1], 0777) != 0) {
		fprintf(stderr, "usage: index_databases NEW-FOLDER [ROWS]\n");
		return 2;
	}
	run_lmdb(argv[1], rows, lmdb);
	run_sqlite(argv[1], rows, sqlite);
	printf("%llu rows, CPU us each   LMDB  SQLite  ratio\n", (unsigned long long)rows);
	printf("  transaction with one insert %6.2f %6.2f %5.1f\n", lmdb[0], sqlite[0], sqlite[0] / lmdb[0]);
	printf("  look-up                     %6.2f %6.2f %5.1f\n", lmdb[1], sqlite[1], sqlite[1] / lmdb[1]);
	return 0;
}
