# SPDX-License-Identifier: MIT. gpt2_train.py [STEPS [float32]]: transformers' GPT-2, made from its configuration, trained in bfloat16.
import sys

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, get_linear_schedule_with_warmup

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
torch.manual_seed(0)
model = GPT2LMHeadModel(GPT2Config(n_layer=6, n_embd=384, n_head=6, n_positions=256, vocab_size=8192)).cuda()
model.train()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
scheduler = get_linear_schedule_with_warmup(optimizer, 5, steps)
loader = DataLoader(torch.randint(0, 8192, (8 * steps, 128)), batch_size=8, shuffle=True)
done = 0
for ids in loader:
    ids = ids.cuda(non_blocking=True)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled="float32" not in sys.argv):
        loss = model(ids, labels=ids).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    done += 1
    if done % 5 == 0:
        assert loss.item() < 12
torch.cuda.synchronize()
print(f"steps={done}")
