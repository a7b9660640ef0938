# SPDX-License-Identifier: MIT. resnet50.py: torchvision's ResNet-50 on made-up pictures: worker processes, pinned memory, mixed precision.
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 16 * 12

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.rand(3, 96, 96, generator=g), i % 10


def main():
    torch.manual_seed(0)
    model = torchvision.models.resnet50(num_classes=10).cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024)
    loader = DataLoader(Pictures(), batch_size=16, num_workers=3, pin_memory=True, drop_last=True)
    done = 0
    for x, y in loader:
        x = x.cuda(non_blocking=True).to(memory_format=torch.channels_last)
        y = y.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        done += 1
    torch.cuda.synchronize()
    print(f"steps={done}")


if __name__ == "__main__":
    main()
