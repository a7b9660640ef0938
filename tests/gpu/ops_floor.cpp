/* SPDX-License-Identifier: MIT. ops_floor.cpp: a callback of torch's RecordFunction that does nothing: what torch itself takes of
 * the switch ops. switch_cost.py builds it and turns it on and off. */
#include <ATen/record_function.h>

static at::CallbackHandle handle;

static std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &)
{
	return nullptr;
}

static void end(const at::RecordFunction &, at::ObserverContext *)
{
}

extern "C" void turn(int on)
{
	if (on)
		handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end));
	else
		at::removeCallback(handle);
}
