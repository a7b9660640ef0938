# SPDX-License-Identifier: MIT. gpt2_generate.py: transformers' generate(): greedy and sampled, with its key-value cache.
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(n_layer=6, n_embd=384, n_head=6, n_positions=256, vocab_size=8192, bos_token_id=0, eos_token_id=0, pad_token_id=0)
model = GPT2LMHeadModel(config).cuda().eval().half()
prompt = torch.randint(1, 8192, (4, 32), device="cuda")
mask = torch.ones_like(prompt)
greedy = model.generate(prompt, attention_mask=mask, max_new_tokens=40, min_new_tokens=40, do_sample=False)
sampled = model.generate(prompt, attention_mask=mask, max_new_tokens=40, min_new_tokens=40, do_sample=True, top_k=50)
torch.cuda.synchronize()
print(f"tokens={greedy.shape[1] + sampled.shape[1]}")
