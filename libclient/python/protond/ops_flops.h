/* SPDX-License-Identifier: MIT. ops_flops.h: the multiplications and additions of an operator, as
 * torch.utils.flop_counter counts them; of ops.cpp alone. */
#ifndef PROTOND_OPS_FLOPS_H
#define PROTOND_OPS_FLOPS_H

#include <ATen/record_function.h>

#include <stddef.h>
#include <stdint.h>

#include <utility>

namespace
{

using values = decltype(std::declval<const at::RecordFunction &>().inputs());

/* One whose sizes are numbers. */
bool has_sizes(const at::Tensor &t)
{
	return t.defined() && !t.is_nested() &&
	       !t.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

enum work { NO_WORK, MM, ADDMM, BMM, BADDBMM, CONV, CONV_BACKWARD, ATTENTION, ATTENTION_BACKWARD };

struct work_name {
	const char *name;
	enum work work;
};

const struct work_name works[] = {
	{"aten::mm", MM},
	{"aten::addmm", ADDMM},
	{"aten::bmm", BMM},
	{"aten::baddbmm", BADDBMM},
	{"aten::convolution", CONV},
	{"aten::convolution_backward", CONV_BACKWARD},
	{"aten::_scaled_dot_product_flash_attention", ATTENTION},
	{"aten::_scaled_dot_product_flash_attention_for_cpu", ATTENTION},
	{"aten::_scaled_dot_product_efficient_attention", ATTENTION},
	{"aten::_scaled_dot_product_cudnn_attention", ATTENTION},
	{"aten::_scaled_dot_product_flash_attention_backward", ATTENTION_BACKWARD},
	{"aten::_scaled_dot_product_flash_attention_for_cpu_backward", ATTENTION_BACKWARD},
	{"aten::_scaled_dot_product_efficient_attention_backward", ATTENTION_BACKWARD},
	{"aten::_scaled_dot_product_cudnn_attention_backward", ATTENTION_BACKWARD},
};

double product(c10::IntArrayRef d, size_t from)
{
	double n = 1;

	for (size_t i = from; i < d.size(); i++)
		n *= (double)d[i];
	return n;
}

int64_t at_of(const c10::IValue &v, size_t i)
{
	const auto list = v.toListRef();

	return list.empty() ? 1 : list[i < list.size() ? i : list.size() - 1].toInt();
}

/* Multiplications and additions of a convolution, and the elements of what comes out. */
double conv_flops(values in, double *ret_out)
{
	const auto x = in[0].toTensor().sizes(), w = in[1].toTensor().sizes();
	const bool transposed = in[6].toBool();
	double places = 1;

	if (x.size() < 3 || w.size() != x.size())
		return 0;
	for (size_t i = 2; i < x.size(); i++) {
		const int64_t stride = at_of(in[3], i - 2), pad = at_of(in[4], i - 2),
			      dilation = at_of(in[5], i - 2);

		places *= stride <= 0
				  ? 0
				  : (double)((x[i] + 2 * pad - dilation * (w[i] - 1) - 1) / stride +
					     1);
	}
	*ret_out = (double)x[0] * (double)w[0] * places; /* of a transposed one: about */
	return 2 * (transposed ? product(x, 2) : places) * product(w, 2) * (double)x[0] *
	       (double)w[0] * (double)w[1];
}

double attention_flops(values in, size_t first, double *ret_out)
{
	const auto q = in[first].toTensor().sizes(), k = in[first + 1].toTensor().sizes(),
		   v = in[first + 2].toTensor().sizes();
	double pairs;

	if (q.size() != 4 || k.size() != 4 || v.size() != 4)
		return 0;
	pairs = 2 * (double)q[0] * (double)q[1] * (double)q[2] * (double)k[2];
	*ret_out = product(q, 0);
	return first == 0 ? pairs * (double)(q[3] + v[3])
			  : pairs * (3 * (double)q[3] + 2 * (double)v[3]);
}

/* a (…, n, k) × b (…, k, m) */
double matmul_flops(values in, size_t first, double *ret_out)
{
	const auto a = in[first].toTensor().sizes(), b = in[first + 1].toTensor().sizes();

	if (a.size() < 2 || b.size() < 2)
		return 0;
	*ret_out = product(a, 0) / (a.back() != 0 ? (double)a.back() : 1) * (double)b.back();
	return 2 * product(a, 0) * (double)b.back();
}

double conv_backward_flops(values in, double *ret_out)
{
	const auto grad = in[0].toTensor().sizes(), x = in[1].toTensor().sizes(),
		   w = in[2].toTensor().sizes();
	const auto mask = in[10].toListRef();
	const bool transposed = in[7].toBool();
	double one;

	if (x.size() < 3 || w.size() != x.size() || grad.size() != x.size() || mask.size() < 2)
		return 0;
	one = 2 * product(transposed ? x : grad, 2) * product(w, 2) * (double)x[0] * (double)w[0] *
	      (double)w[1];
	*ret_out = (mask[0].toBool() ? product(x, 0) : 0) + (mask[1].toBool() ? product(w, 0) : 0);
	return one * ((mask[0].toBool() ? 1 : 0) + (mask[1].toBool() ? 1 : 0));
}

double flops_of(enum work work, values in, double *ret_out)
{
	static const uint8_t tensors[] = {0, 2, 3, 2, 3, 2, 3, 3, 4},
			     inputs[] = {0, 2, 3, 2, 3, 9, 11, 3, 4};

	*ret_out = 0;
	if (in.size() < inputs[work])
		return 0;
	for (size_t i = 0; i < tensors[work]; i++)
		if (!in[i].isTensor() || !has_sizes(in[i].toTensor()))
			return 0;
	switch (work) {
	case MM:
	case BMM:
		return matmul_flops(in, 0, ret_out);
	case ADDMM:
	case BADDBMM:
		return matmul_flops(in, 1, ret_out);
	case CONV:
		return conv_flops(in, ret_out);
	case CONV_BACKWARD:
		return conv_backward_flops(in, ret_out);
	case ATTENTION:
		return attention_flops(in, 0, ret_out);
	case ATTENTION_BACKWARD:
		return attention_flops(in, 1, ret_out);
	case NO_WORK:
		break;
	}
	return 0;
}

} // namespace

#endif
