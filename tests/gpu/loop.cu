/* SPDX-License-Identifier: MIT. loop.cu: L of the peers for a process that has more to do: empty
 * kernels launched back to back, without a synchronization. 0, or a cudaError_t. */
__global__ void empty_kernel()
{
}

extern "C" int launch_empty(long n)
{
	for (long i = 0; i < n; i++)
		empty_kernel<<<1, 1>>>();
	return (int)cudaGetLastError();
}
