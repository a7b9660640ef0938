/* SPDX-License-Identifier: MIT. family.h: what kind of work a kernel does, by its name: the one table
 * of them. Pure. */
#ifndef PROTOND_VIEWER_FAMILY_H
#define PROTOND_VIEWER_FAMILY_H

#include <stdint.h>

/* clang-format off */
/* The first family with a word, in lower case, that the name has in it in any: so the narrower ones stand
 * first. A word has three letters at least. A new one is a row. */
#define FAMILIES(X) \
	X(attention,   "flash", "fmha", "attention", "sdpa", "mha_", "attn", "dot_do_o", "convert_dq") \
	X(conv,        "convolve", "conv1d", "conv2d", "conv3d", "_conv", "conv_", "winograd", "fprop", "dgrad", "wgrad", "im2col") \
	X(gemm,        "gemm", "gemv", "nvjet", "cutlass", "xmma", "matmul", "splitkreduce", "cijk_", "_mm_", "cublas", "dot_kernel") \
	X(norm,        "layernorm", "layer_norm", "rmsnorm", "rms_norm", "batchnorm", "batch_norm", "groupnorm", "group_norm", "bn_fw", "bn_bw", "_norm", "norm_", "norm<") \
	X(softmax,     "softmax", "cross_entropy", "nll_loss", "logsumexp") \
	X(optimizer,   "adam", "sgd_", "lamb_", "adagrad", "multi_tensor_apply", "fused_optimizer", "foreach") \
	X(pool,        "pool") \
	X(embedding,   "embedding") \
	X(index,       "index", "gather", "scatter", "masked_", "take_along") \
	X(sort,        "sort", "topk", "radix", "scan", "bitonic", "cumsum") \
	X(random,      "philox", "curand", "distribution", "dropout", "bernoulli", "random") \
	X(reduce,      "reduce", "reduction", "sum_kernel", "mean_kernel", "argmax", "argmin", "triton_red", "triton_per") \
	X(elementwise, "elementwise", "pointwise", "vectorized", "unrolled", "copy_kernel", "fill", "cat", "triton_poi", "transpose", "permute", "where", "loop_", "input_")
/* clang-format on */

/* class: enum cell_class. "comm", "copy", "memset"; of a kernel one of FAMILIES, or "other"; of scopes
 * "". */
const char *family_of(const char *name, uint8_t class);

#endif
