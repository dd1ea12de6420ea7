/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The Pollux Authors
 *
 * hdf5.c - ranks write datasets together by columns and read them by rows
 *
 * usage: hdf5 FILE
 *
 * Contiguous, chunked and compressed. Prints a line a dataset, of the sum of what was read;
 * what differs from what was written ends it with 1.
 */
#include <stdio.h>
#include <stdlib.h>

#include <hdf5.h>
#include <mpi.h>

#define ROWS 240u
#define COLS 720u

static int rank, n_ranks;

#define DIE(what) \
	do { \
		fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, what); \
		MPI_Abort(MPI_COMM_WORLD, 1); \
	} while (0)
#define OK(call) \
	do { \
		if ((call) < 0) \
			DIE(#call); \
	} while (0)

static double
value(unsigned set, hsize_t row, hsize_t col)
{
	return set * 1000000.0 + (double)row * COLS + (double)col;
}

/* This rank's part of the file: some columns, or some rows. */
static void
part(int by_rows, hsize_t *start, hsize_t *count)
{
	hsize_t all[2] = {ROWS, COLS};
	int d = by_rows ? 0 : 1;

	start[!d] = 0;
	count[!d] = all[!d];
	start[d] = all[d] * (hsize_t)rank / (hsize_t)n_ranks;
	count[d] = all[d] * (hsize_t)(rank + 1) / (hsize_t)n_ranks - start[d];
}

static void
transfer(hid_t set_id, unsigned set, int write)
{
	hid_t how = H5Pcreate(H5P_DATASET_XFER), mem, file = H5Dget_space(set_id);
	hsize_t start[2], count[2], i, k;
	double *buf, sum = 0, total = 0;

	OK(H5Pset_dxpl_mpio(how, H5FD_MPIO_COLLECTIVE));
	part(!write, start, count);
	OK(H5Sselect_hyperslab(file, H5S_SELECT_SET, start, NULL, count, NULL));
	OK(mem = H5Screate_simple(2, count, NULL));
	buf = calloc(count[0] * count[1], sizeof(*buf));
	if (buf == NULL)
		DIE("no memory");
	for (i = 0; write && i < count[0]; i++)
		for (k = 0; k < count[1]; k++)
			buf[i * count[1] + k] = value(set, start[0] + i, start[1] + k);
	if (write)
		OK(H5Dwrite(set_id, H5T_NATIVE_DOUBLE, mem, file, how, buf));
	else
		OK(H5Dread(set_id, H5T_NATIVE_DOUBLE, mem, file, how, buf));
	for (i = 0; !write && i < count[0]; i++) {
		for (k = 0; k < count[1]; k++) {
			if (buf[i * count[1] + k] != value(set, start[0] + i, start[1] + k))
				DIE("what was read is not what was written");
			sum += buf[i * count[1] + k];
		}
	}
	MPI_Reduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!write && rank == 0)
		printf("dataset %u sum %.17g\n", set, total);
	free(buf);
	H5Sclose(mem);
	H5Sclose(file);
	H5Pclose(how);
}

static hid_t
file_of(const char *name, int write)
{
	hid_t how = H5Pcreate(H5P_FILE_ACCESS), f;

	OK(H5Pset_fapl_mpio(how, MPI_COMM_WORLD, MPI_INFO_NULL));
	if (write)
		OK(f = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, how));
	else
		OK(f = H5Fopen(name, H5F_ACC_RDONLY, how));
	H5Pclose(how);
	return f;
}

static void
write_all(const char *name)
{
	hsize_t dims[2] = {ROWS, COLS}, chunk[2] = {60, 90};
	hid_t f = file_of(name, 1), space = H5Screate_simple(2, dims, NULL);
	char set_name[16];

	for (unsigned set = 0; set < 3; set++) {
		hid_t how = H5Pcreate(H5P_DATASET_CREATE), set_id;

		if (set > 0)
			OK(H5Pset_chunk(how, 2, chunk));
		if (set > 1)
			OK(H5Pset_deflate(how, 4));
		snprintf(set_name, sizeof(set_name), "set%u", set);
		OK(set_id = H5Dcreate2(f, set_name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, how, H5P_DEFAULT));
		transfer(set_id, set, 1);
		H5Dclose(set_id);
		H5Pclose(how);
	}
	H5Sclose(space);
	OK(H5Fclose(f));
}

static void
read_all(const char *name)
{
	hid_t f = file_of(name, 0);
	char set_name[16];

	for (unsigned set = 0; set < 3; set++) {
		hid_t set_id;

		snprintf(set_name, sizeof(set_name), "set%u", set);
		OK(set_id = H5Dopen2(f, set_name, H5P_DEFAULT));
		transfer(set_id, set, 0);
		H5Dclose(set_id);
	}
	OK(H5Fclose(f));
}

int
main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	if (argc != 2)
		DIE("usage: hdf5 FILE");
	write_all(argv[1]);
	MPI_Barrier(MPI_COMM_WORLD);
	read_all(argv[1]);
	MPI_Finalize();
	return 0;
}
